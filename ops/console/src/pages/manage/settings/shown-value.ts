import { useTranslation } from 'react-i18next';
import { formatCount } from '../../../text/format.ts';

const shownCharacters = 80;

/** Returns a function that shows the value of an option as a short text. */
export function useShownValue(): (value: unknown) => string {
  const { t } = useTranslation();
  return (value) => {
    if (value === true) return t('form.on');
    if (value === false) return t('form.off');
    if (value === undefined || value === null) return t('form.unset');
    if (typeof value === 'number') return formatCount(value);
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (text === '{}') return t('form.unset');
    return text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text;
  };
}
