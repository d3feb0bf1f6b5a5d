/** What the client asked to see besides the standard wire: the `Holdfast-Events` request header. */
export type EventsMode = 'none' | 'chunks' | 'comments';
