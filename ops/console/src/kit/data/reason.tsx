import { useTranslation } from 'react-i18next';
import type { Meaning } from '../../../../client/operations.ts';
import { withBrands } from '../../text/connectors.ts';
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
  const { i18n } = useTranslation();
  const original = status ? `${status} ${reason}` : reason;
  return (
    <span className={styles.reason}>
      {textOf(reason, meaning, i18n.language)}
      <code lang="en" translate="no">
        {original}
      </code>
    </span>
  );
}

function textOf(reason: string, meaning: Meaning | null | undefined, language: string): string | undefined {
  if (!meaning || meaning.code === 'other') return undefined;
  if (language === 'zh') return `${meaning.zh} `;
  if (!reason.includes(' ')) return `${meaning.en} `;
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
