import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ShownApp } from '../../../../../../api/replies/admin/types.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Copy } from '../../../kit/controls/copy.tsx';
import { Facts, Panel } from '../../../kit/panel.tsx';
import styles from './settings.module.css';

const keys = ['appKey', 'masterKey', 'hookKey'] as const;

/** Identity of an app; its keys, hidden until a click, for owners only. */
export function Keys({ app }: { app: ShownApp }) {
  const { t } = useTranslation();
  return (
    <Panel title={t('settings.identity')}>
      <Facts
        rows={[
          [t('apps.name'), app.name],
          [t('apps.id'), <code key="id">{app.appId}</code>],
          [t('apps.plan'), t(`plan.${app.plan}`)],
          [t('settings.edition'), t(`edition.${app.edition}`)],
          ...keys.flatMap((key): [string, React.ReactNode][] => {
            const value = app[key];
            return value === undefined ? [] : [[t(`key.${key}`), <Key key={key} name={key} value={value} />]];
          }),
        ]}
      />
    </Panel>
  );
}

function Key({ name, value }: { name: (typeof keys)[number]; value: string }) {
  const { t } = useTranslation();
  const [isShown, setShown] = useState(false);
  return (
    <span className={styles.key}>
      <code>{isShown ? value : '••••••••••••••••'}</code>
      <Button
        look="quiet"
        aria-label={t(isShown ? 'key.hide' : 'key.show', { name: t(`key.${name}`) })}
        onClick={() => setShown(!isShown)}
      >
        {t(isShown ? 'action.hide' : 'action.show')}
      </Button>
      <Copy text={value} />
    </span>
  );
}
