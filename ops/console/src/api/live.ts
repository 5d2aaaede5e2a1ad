import { useEffect, useState } from 'react';

/** Handlers of the events of a stream, by name; each gets the JSON of the event. */
export type LiveHandlers = Record<string, (data: unknown) => void>;

export interface Live {
  /** Whether the stream is open; without it the page asks from time to time. */
  isOpen: boolean;
  isHeld: boolean;
  setHeld(isHeld: boolean): void;
}

/**
 * Listens to topics of the service (`GET /console/api/events`) while the page is visible and not held. The browser connects
 * again after a loss.
 */
export function useLive(topics: string, handlers: LiveHandlers): Live {
  const [isOpen, setOpen] = useState(false);
  const [isHeld, setHeld] = useState(false);
  const isVisible = useVisibility();
  const isOn = isVisible && !isHeld && topics !== '';
  useEffect(() => {
    if (!isOn) return;
    const source = new EventSource(`/console/api/events?topics=${encodeURIComponent(topics)}`);
    source.onopen = () => setOpen(true);
    source.onerror = () => setOpen(false);
    source.addEventListener('bye', () => source.close());
    for (const [name, handle] of Object.entries(handlers))
      source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
    return () => {
      source.close();
      setOpen(false);
    };
  }, [topics, isOn, handlers]);
  return { isOpen, isHeld, setHeld };
}

/** Tells whether the tab is visible: a hidden one asks for nothing. */
function useVisibility(): boolean {
  const [isVisible, setVisible] = useState(() => document.visibilityState === 'visible');
  useEffect(() => {
    const update = () => setVisible(document.visibilityState === 'visible');
    document.addEventListener('visibilitychange', update);
    return () => document.removeEventListener('visibilitychange', update);
  }, []);
  return isVisible;
}
