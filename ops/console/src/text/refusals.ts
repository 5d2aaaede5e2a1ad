import { useTranslation } from 'react-i18next';
import { errors } from '../../../../shared/domain/texts/zh.json';
import type { ApiError } from '../api/client.ts';

interface RefusalText {
  text: string;
  /** English text of the server, beside a Chinese one. */
  original?: string;
}

const chineseTexts: Readonly<Record<string, string>> = errors;

/** Returns what a refusal says in the language of the page; undefined is a failure of the page itself. */
export function useRefusalText(refusal: ApiError | undefined): RefusalText {
  const { t, i18n } = useTranslation();
  if (!refusal) return { text: t('state.broken') };
  if (refusal.status === 0) return { text: t('state.unreachable') };
  const original = refusal.message || t('state.broken');
  if (i18n.language !== 'zh' || refusal.kind === null) return { text: original };
  const text = refusal.detail ?? chineseTexts[refusal.kind];
  return text === undefined ? { text: original } : { text, original };
}
