import { Dialog } from '@base-ui/react/dialog';
import { Link, useRouterState } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { buttonClass } from '../../kit/controls/button.tsx';
import dialog from '../../kit/dialog.module.css';
import { Facts } from '../../kit/panel.tsx';
import { findGuide } from '../guides/guides.ts';
import { appPages, servicePages } from './page-entries.ts';

/** Keys that work on every page, and their texts. */
const keys = [
  ['c', 'help.compose'],
  ['/', 'help.find'],
  ['.', 'help.hold'],
  ['?', 'help.help'],
] as const;

/** Shortcuts of the console, and a link to the guide about the current page. */
export function HelpDialog({ close }: { close: () => void }) {
  const { t } = useTranslation();
  const doc = useGuidePath();
  const pages = [...appPages, ...servicePages].filter(({ key }) => key !== undefined);
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && close()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={dialog.backdrop} />
        <Dialog.Popup className={`${dialog.popup} ${dialog.narrow}`}>
          <Dialog.Title className={dialog.title}>{t('help.title')}</Dialog.Title>
          <Facts
            rows={[
              [t('help.search'), <kbd key="k">Ctrl K, ⌘ K</kbd>],
              ...keys.map(([key, text]) => [t(text), <kbd key={key}>{key}</kbd>] as const),
              ...pages.map(
                ({ key, title }) =>
                  [t('help.open', { page: t(title) }), <kbd key={key}>g {key}</kbd>] as const,
              ),
            ]}
          />
          <p>
            {t('help.document')}:{' '}
            <Link to="/docs/$" params={{ _splat: doc }} onClick={close}>
              {findGuide(doc)?.title ?? doc}
            </Link>
          </p>
          <div className={dialog.end}>
            <Dialog.Close className={buttonClass('plain')}>{t('action.back')}</Dialog.Close>
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Returns the guide about the current page: that of the entry with the longest path. */
function useGuidePath(): string {
  const routeId = useRouterState({ select: ({ matches }) => matches.at(-1)?.fullPath ?? '/' });
  const path = routeId.replace(/\/$/, '');
  const found = [...appPages, ...servicePages]
    .filter(({ to }) => path === to.replace(/\/$/, '') || path.startsWith(`${to}/`))
    .toSorted((a, b) => b.to.length - a.to.length);
  return found[0]?.doc ?? 'console';
}
