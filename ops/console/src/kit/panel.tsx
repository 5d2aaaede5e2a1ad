import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Copy } from './controls/copy.tsx';
import noticeStyles from './notice.module.css';
import panelStyles from './panel.module.css';

/** Subject of all pages in a frame, such as the name of an app. Undefined without a subject. */
export const TitleScope = createContext<string | undefined>(undefined);

/**
 * Sets the tab title to the page, its subject and the product, so that tabs and history entries can
 * be distinguished.
 */
export function useTitle(page: string): void {
  const scope = useContext(TitleScope);
  useEffect(() => {
    document.title = [page, scope, 'Carillon']
      .filter((part) => part !== undefined && part !== '')
      .join(' · ');
  }, [page, scope]);
}

/** Box with a heading. Actions or a note are on the right. */
export function Panel({
  title,
  side,
  children,
}: {
  title: string;
  side?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className={panelStyles.panel}>
      <header className={panelStyles.header}>
        <h2>{title}</h2>
        {side}
      </header>
      <div className={panelStyles.body}>{children}</div>
    </section>
  );
}

interface FoldedPanelProps {
  title: string;
  /** Short description of the content, shown beside the heading. */
  side?: ReactNode;
  /** True to open the box at first. Later changes do not close it. */
  isOpen: boolean;
  children: ReactNode;
}

/** Box with a heading that opens and closes it. */
export function FoldedPanel({ title, side, isOpen, children }: FoldedPanelProps) {
  const [isShown, setShown] = useState(isOpen);
  return (
    <details
      className={panelStyles.panel}
      open={isShown}
      onToggle={(event) => setShown(event.currentTarget.open)}
    >
      <summary className={`${panelStyles.header} ${panelStyles.summary}`}>
        <h2>{title}</h2>
        {side && <span className={panelStyles.side}>{side}</span>}
      </summary>
      <div className={panelStyles.body}>{children}</div>
    </details>
  );
}

interface PageHeaderProps {
  /** Text of the heading and of the tab title. */
  title: string;
  /** True if the title is a name that a person chose. It is not translated. */
  isName?: boolean;
  /** Language of the title, if it is not the language of the page. */
  lang?: string | undefined;
  side?: ReactNode;
  children?: ReactNode;
}

/** Heading of a page with its state and actions. Also sets the tab title. */
export function PageHeader({ title, isName = false, lang, side, children }: PageHeaderProps) {
  useTitle(title);
  return (
    <div className={panelStyles.pageHeader}>
      <div className={panelStyles.pageTitle}>
        <h1 tabIndex={-1} translate={isName ? 'no' : undefined} lang={lang}>
          {title}
        </h1>
        {children}
      </div>
      {side && <div className={panelStyles.actions}>{side}</div>}
    </div>
  );
}

/** List of names and values. */
export function Facts({ rows }: { rows: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className={panelStyles.facts}>
      {rows.map(([name, value]) => (
        <div key={name} className={panelStyles.fact}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Json({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard.
    <pre className={panelStyles.json} tabIndex={0}>
      {text}
    </pre>
  );
}

/** Box that shows a value as JSON, with a copy button. */
export function JsonPanel({
  title,
  value,
  side,
}: {
  title: string;
  value: unknown;
  side?: ReactNode;
}) {
  const text = JSON.stringify(value, null, 2);
  return (
    <Panel
      title={title}
      side={
        <div className={panelStyles.actions}>
          <Copy text={text} />
          {side}
        </div>
      }
    >
      <Json text={text} />
    </Panel>
  );
}

/** Value as JSON, closed at first, with a copy button. For boxes that show the value in words. */
export function FoldedJson({ value }: { value: unknown }) {
  const { t } = useTranslation();
  const text = JSON.stringify(value, null, 2);
  return (
    <details className={panelStyles.folded}>
      <summary>{t('compose.json')}</summary>
      <Copy text={text} />
      <Json text={text} />
    </details>
  );
}

/** Message about the whole page, with a button if an action is possible. */
export function Notice({ variant, children }: { variant: 'plain' | 'warn'; children: ReactNode }) {
  return (
    <p className={noticeStyles[variant]} role="status">
      {children}
    </p>
  );
}
