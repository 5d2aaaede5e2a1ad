import { writeMeaning } from '../../../../../shared/domain/admin/reasons/meaning.ts';
import type { Language } from '../../../../../shared/domain/texts/catalogue.ts';
import type { Meaning } from '../../../../client/operations.ts';
import { withBrands } from '../../text/connectors.ts';
import { useLanguage } from '../../text/explanation.ts';
import styles from './reason.module.css';

interface ReasonProps {
  reason: string;
  meaning: Meaning | null | undefined;
  /** Status of the gateway before the reason; 0 without one. */
  status?: number | string | null;
}

/**
 * Reason of a gateway, a connection or the service: what it means in the language of the page, and the reason itself, to
 * copy. An English reason that is a sentence already needs no meaning on an English page.
 */
export function Reason({ reason, meaning, status = 0 }: ReasonProps) {
  const language = useLanguage();
  const original = status ? `${status} ${reason}` : reason;
  return (
    <span className={styles.reason}>
      {textOf(reason, meaning, language)}
      <code lang="en" translate="no">
        {original}
      </code>
    </span>
  );
}

function textOf(reason: string, meaning: Meaning | null | undefined, language: Language): string | undefined {
  if (!meaning || meaning.code === 'other') return undefined;
  if (language === 'zh' || !reason.includes(' ')) return `${writeMeaning(meaning, language)} `;
  // The reason itself stays to be searched for; a person reads brands.
  const readable = withBrands(reason);
  return readable === reason ? undefined : `${readable} `;
}

/** Several reasons, such as problems of credentials. */
export function Reasons({ reasons, meanings }: { reasons: readonly string[]; meanings: readonly Meaning[] }) {
  return reasons.map((reason, at) => (
    <span key={reason}>
      <Reason reason={reason} meaning={meanings[at]} />{' '}
    </span>
  ));
}
