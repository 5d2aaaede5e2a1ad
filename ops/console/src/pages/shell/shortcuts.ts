import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';

const chordMs = 1200;

/** Keys after `g`, and the page of the app that they open. */
const pages = {
  o: '/apps/$appId',
  p: '/apps/$appId/pushes',
  d: '/apps/$appId/devices',
} as const;

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Keys of every page: `g o`, `g p`, `g d`, `g s` open pages, `c` composes a push, `/` goes to the search field of the page. */
export function useShortcuts(appId: string | undefined): void {
  const navigate = useNavigate();
  const chordUntil = useRef(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (event.key === '/') {
        const field = document.querySelector<HTMLElement>('main input[type=search]');
        if (!field) return;
        event.preventDefault();
        field.focus();
      } else if (event.key === 'g') chordUntil.current = event.timeStamp + chordMs;
      else if (event.key === 'c' && event.timeStamp >= chordUntil.current && appId !== undefined)
        void navigate({ to: '/apps/$appId/pushes/new', params: { appId } });
      else if (event.timeStamp < chordUntil.current) {
        chordUntil.current = 0;
        const page = Object.entries(pages).find(([key]) => key === event.key)?.[1];
        if (page && appId !== undefined) void navigate({ to: page, params: { appId } });
        else if (event.key === 's') void navigate({ to: '/operating' });
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [appId, navigate]);
}
