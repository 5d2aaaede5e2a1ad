import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { appPlaces, servicePlaces } from './places.ts';

const chordMs = 1200;

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Keys of every page: `g` and the key of a page open it, `c` composes a push, `/` goes to the search field of the page. */
export function useShortcuts(appId: string | undefined): void {
  const navigate = useNavigate();
  const chordUntil = useRef(0);
  useEffect(() => {
    const open = (key: string) => {
      const ofApp = appPlaces.find((place) => place.key === key);
      const ofService = servicePlaces.find((place) => place.key === key);
      if (ofApp && appId !== undefined) void navigate({ to: ofApp.to, params: { appId } });
      else if (ofService) void navigate({ to: ofService.to });
    };
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
        open(event.key);
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [appId, navigate]);
}
