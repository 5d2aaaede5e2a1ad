import { useTranslation } from 'react-i18next';
import { isCode, textIn } from '../../../../shared/domain/texts/catalogue.ts';
import { writeShown } from '../../../../shared/domain/texts/texts.ts';
import type { ApiError } from '../api/client.ts';

interface RefusalText {
  text: string;
  /** English text of the server, shown in addition to a Chinese text. */
  original?: string;
}

/**
 * Returns the message of a refusal in the page's language. Undefined means a failure of the page
 * itself.
 */
export function useRefusalText(refusal: ApiError | undefined): RefusalText {
  const { t, i18n } = useTranslation();
  if (!refusal) return { text: t('state.broken') };
  if (refusal.status === 0) return { text: t('state.unreachable') };
  const original = refusal.message || t('state.broken');
  const text = i18n.language === 'zh' ? chineseOf(refusal) : undefined;
  return text === undefined ? { text: original } : { text, original };
}

function chineseOf({ kind, detail }: ApiError): string | undefined {
  if (detail && isCode('details', detail.code)) return writeShown('details', detail, 'zh');
  return kind !== null && isCode('errors', kind) ? textIn('zh', 'errors', kind) : undefined;
}
