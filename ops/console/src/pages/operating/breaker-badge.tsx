import { useTranslation } from 'react-i18next';
import type { Breaker } from '../../../../client/operations.ts';
import { Badge, type Tone } from '../../kit/data/badge.tsx';

const tones: Record<Breaker['state'], Tone> = { closed: 'good', 'half-open': 'warn', open: 'bad' };

/** State of a breaker as a coloured word, and whether a person forced it. */
export function BreakerBadge({ breaker: { state, forced } }: { breaker: Pick<Breaker, 'state' | 'forced'> }) {
  const { t } = useTranslation();
  return (
    <Badge tone={tones[state]}>
      {t(`breakerState.${state}`)}
      {forced && ` · ${t('operating.forced')}`}
    </Badge>
  );
}
