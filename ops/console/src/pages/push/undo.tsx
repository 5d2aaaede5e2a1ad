import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { Button } from '../../kit/controls/button.tsx';

/** A push that begins within this time was sent with a time to undo it. */
const undoMs = 60_000;
const tickMs = 250;

/** Returns the time until a scheduled push begins, while that is less than a minute; else undefined. */
export function useUndoMs(push: PushDetail): number | undefined {
  const isScheduled = push.state === 'scheduled';
  const [nowMs, setNowMs] = useState(() => Date.now());
  const leftMs = Date.parse(push['push-time']) - nowMs;
  const isSoon = isScheduled && leftMs > 0 && leftMs < undoMs;
  useEffect(() => {
    if (!isSoon) return;
    const timer = setInterval(() => setNowMs(Date.now()), tickMs);
    return () => clearInterval(timer);
  }, [isSoon]);
  return isSoon ? leftMs : undefined;
}

/** Button that takes a push back before it begins, with the seconds that are left. */
export function Undo({ leftMs, isBusy, undo }: { leftMs: number; isBusy: boolean; undo: () => void }) {
  const { t } = useTranslation();
  return (
    <Button look="primary" isBusy={isBusy} onClick={undo} aria-label={t('push.undo')}>
      {t('push.undoIn', { seconds: Math.ceil(leftMs / 1000) })}
    </Button>
  );
}
