import { useTranslation } from 'react-i18next';
import { Button } from './button.tsx';

interface PagerProps {
  /** Cursor of the next page; null after the last one. */
  next: string | null;
  /** Cursor of this page; absent on the first one. */
  cursor: string | undefined;
  open: (cursor: string | undefined) => void;
}

/** Way to the next page of a list and back to the first; absent where one page has all. */
export function Pager({ next, cursor, open }: PagerProps) {
  const { t } = useTranslation();
  if (next === null && cursor === undefined) return null;
  return (
    <nav aria-label={t('pager.label')} className="pager">
      <Button disabled={cursor === undefined} onClick={() => open(undefined)}>
        {t('pager.first')}
      </Button>
      <Button disabled={next === null} onClick={() => open(next ?? undefined)}>
        {t('pager.next')}
      </Button>
    </nav>
  );
}
