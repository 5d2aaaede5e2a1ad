import { useEffect, useState } from 'react';
import { adminBase, requestOf } from '../../../client/client.ts';

/** Event handlers by event name. Each receives the parsed JSON of the event. */
export type LiveHandlers = Record<string, (data: unknown) => void>;

export interface Live {
  /** True if the stream is open. Otherwise, the page polls. */
  isOpen: boolean;
  isPaused: boolean;
  setPaused(isPaused: boolean): void;
}

/**
 * Delay before the page reopens a stream that the server refused or ended. The browser itself
 * reconnects only lost streams.
 */
const reopenMs = 5000;

/**
 * Listens to topics of the service while the page is visible and live updates are not paused.
 * Reopens a stream that is lost, refused or ended.
 */
export function useLive(topics: string, handlers: LiveHandlers): Live {
  const [isOpen, setOpen] = useState(false);
  const [isPaused, setPaused] = useState(false);
  const isVisible = useVisibility();
  const isOn = isVisible && !isPaused && topics !== '';
  useEffect(() => {
    if (!isOn) return;
    const close = openStream(topics, handlers, setOpen);
    return () => {
      close();
      setOpen(false);
    };
  }, [topics, isOn, handlers]);
  return { isOpen, isPaused, setPaused };
}

function openStream(
  topics: string,
  handlers: LiveHandlers,
  setOpen: (isOpen: boolean) => void,
): () => void {
  let source: EventSource;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const reopen = () => {
    source.close();
    setOpen(false);
    clearTimeout(timer);
    timer = setTimeout(open, reopenMs);
  };
  const open = () => {
    source = new EventSource(adminBase + requestOf('streamEvents', { query: { topics } }).path);
    source.onopen = () => setOpen(true);
    source.onerror = () => {
      setOpen(false);
      if (source.readyState === EventSource.CLOSED) reopen();
    };
    source.addEventListener('bye', reopen);
    for (const [name, handle] of Object.entries(handlers))
      source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

/** True if the tab is visible. A hidden tab makes no calls. */
function useVisibility(): boolean {
  const [isVisible, setVisible] = useState(() => document.visibilityState === 'visible');
  useEffect(() => {
    const update = () => setVisible(document.visibilityState === 'visible');
    document.addEventListener('visibilitychange', update);
    return () => document.removeEventListener('visibilitychange', update);
  }, []);
  return isVisible;
}
