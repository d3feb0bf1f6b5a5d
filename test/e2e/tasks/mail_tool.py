"""A tool that sends mails, which are lines of a file, and the places where its process can be lost: see `mail-tool.ts`."""

import os
import signal

from holdfast_client import UnknownCallError

#: How long the tool takes at most.
HOLD_S = 0.3


class MailTool:
    def __init__(self, invitations, mailbox, place):
        """Its process is killed at the n-th place."""
        #: Where it might have been lost, in order.
        self.places = []
        self._invitations = invitations
        self._mailbox = mailbox
        self._place = int(place)

    def may_be_lost_here(self, at):
        self.places.append(at)
        if len(self.places) == self._place:
            os.kill(os.getpid(), signal.SIGKILL)

    def run(self, call, to):
        self.may_be_lost_here("tool")
        try:
            result = self._invitations.tool(call, self._send_to(to), hold_s=HOLD_S)
        except UnknownCallError as error:
            result = self._seen(to)
            if result is None:
                error.release()
                result = self._invitations.tool(call, self._send_to(to), hold_s=HOLD_S)
        self.may_be_lost_here("tool")
        return result

    async def async_run(self, call, to):
        self.may_be_lost_here("tool")
        try:
            result = await self._invitations.async_tool(call, self._send_to(to), hold_s=HOLD_S)
        except UnknownCallError as error:
            result = self._seen(to)
            if result is None:
                await error.async_release()
                result = await self._invitations.async_tool(call, self._send_to(to), hold_s=HOLD_S)
        self.may_be_lost_here("tool")
        return result

    def _send_to(self, to):
        def send(_args, _context):
            self.may_be_lost_here("tool")
            with open(self._mailbox, "a") as mails:
                mails.write(f"{to}\n")
            self.may_be_lost_here("tool")
            return f"sent to {to}"

        return send

    def _seen(self, to):
        """What the tool has returned, if it has had its effect: that can be seen."""
        if not os.path.exists(self._mailbox):
            return None
        with open(self._mailbox) as mails:
            return f"sent to {to}" if to in mails.read().split("\n") else None
