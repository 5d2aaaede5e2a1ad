import { Tabs as Base } from '@base-ui/react/tabs';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from './button.tsx';
import styles from './tabs.module.css';

interface Tab<T extends string> {
  value: T;
  title: string;
  content: ReactNode;
}

/** Tabs. The page stores the selected tab in its URL. */
export function Tabs<T extends string>({
  label,
  tabs,
  value,
  onChange,
}: {
  label: string;
  tabs: Tab<T>[];
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    <Base.Root value={value} onValueChange={(next: T) => onChange(next)}>
      <Base.List className={styles.list} aria-label={label}>
        {tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className={styles.tab}>
            {tab.title}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map((tab) => (
        <Base.Panel key={tab.value} value={tab.value} className={styles.panel}>
          {tab.content}
        </Base.Panel>
      ))}
    </Base.Root>
  );
}

interface PagerProps {
  /** Cursor of the next page. Null on the last page. */
  next: string | null;
  /** Cursor of this page. Undefined on the first page. */
  cursor: string | undefined;
  open: (cursor: string | undefined) => void;
}

/** Buttons for the next and the first page of a list. Hidden if there is only one page. */
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
