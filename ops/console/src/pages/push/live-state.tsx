import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import type { Live } from '../../api/live.ts';
import { Button } from '../../kit/controls/button.tsx';
import { formatTime } from '../../text/format.ts';

/** Tells whether the page is live, and holds it: figures that stand still can be read. The key `.` does the same. */
export function LiveState({ live, updatedAtMs }: { live: Live; updatedAtMs: number }) {
  const { t } = useTranslation();
  const { isOpen, isHeld, setHeld } = live;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === '.' && event.target === document.body) setHeld(!isHeld);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [isHeld, setHeld]);
  const at = updatedAtMs === 0 ? '–' : formatTime(new Date(updatedAtMs).toISOString());
  const text = isHeld ? t('live.held', { at }) : isOpen ? t('live.open') : t('live.polling', { at });
  return (
    <Button look="quiet" aria-pressed={isHeld} onClick={() => setHeld(!isHeld)} title={t('live.hint')}>
      {text}
    </Button>
  );
}
