import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, type UIMessage } from 'ai';
import { stoppable } from 'holdfast-client';
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';

const chat = JSON.parse(document.querySelector('#chat')?.textContent ?? '') as {
  id: string;
  messages: UIMessage[];
};
const answers = stoppable();
const transport = new DefaultChatTransport({ fetch: answers.fetch });

function Chat() {
  const { messages, sendMessage, status, error } = useChat({ ...chat, resume: true, transport });
  const [fault, setFault] = useState<Error>();
  const isAnswering = status === 'submitted' || status === 'streaming';

  const send = (form: FormData) => {
    setFault(undefined);
    void sendMessage({ text: String(form.get('question')) });
  };
  // Not the `stop` of useChat, which closes the connection: the answer would go on without the page.
  const stop = () => answers.stop().catch(setFault);

  return (
    <>
      <h1>A chat that survives</h1>
      <section aria-label="Conversation" aria-live="polite" aria-busy={isAnswering}>
        {messages.map(({ id, role, parts }) => (
          <article key={id} data-role={role}>
            <h2>{role === 'user' ? 'You' : 'The model'}</h2>
            {parts.map((part) => (part.type === 'text' ? part.text : ''))}
          </article>
        ))}
      </section>
      {(error ?? fault) && <p role="alert">{(error ?? fault)?.message}</p>}
      <form action={send}>
        <label>
          Question <input name="question" required />
        </label>{' '}
        {isAnswering ? (
          <button key="stop" type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button key="send" type="submit">
            Send
          </button>
        )}
      </form>
    </>
  );
}

const root = document.querySelector('main');
if (root)
  createRoot(root).render(
    <StrictMode>
      <Chat />
    </StrictMode>,
  );
