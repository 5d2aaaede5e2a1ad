import { useTranslation } from 'react-i18next';
import { useAppName } from '../../api/apps.ts';
import { printJson } from '../../draft/json-text.ts';
import { Panel } from '../../kit/panel.tsx';
import { parsedBody } from '../compose/draft-state.ts';
import lockScreen from '../compose/preview/lock-screen.module.css';
import type { Entered } from './activity-body.ts';
import styles from './live-activities.module.css';

/**
 * Live Activity on the lock screen: the alert, and the members of the content state. Only the app
 * knows how it draws the state, so the members are listed.
 */
export function ActivityPreview({ appId, entered }: { appId: string; entered: Entered }) {
  const { t } = useTranslation();
  const app = useAppName(appId);
  const { title, text, contentState } = entered;
  const members = Object.entries(parsedBody(contentState).body ?? {});
  return (
    <Panel title={t('preview.title')}>
      <div className={styles.preview}>
        <section
          className={`${lockScreen.screen} ${styles.screen}`}
          aria-label={t('liveActivity.previewOf', { app })}
        >
          <div className={`${lockScreen.card} ${lockScreen.large} ${styles.card}`}>
            <strong translate="no">{app}</strong>
            <span>{[title, text].filter((part) => part !== '').join(' · ')}</span>
            <dl className={styles.state} translate="no">
              {members.map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{typeof value === 'string' ? value : printJson(value)}</dd>
                </div>
              ))}
            </dl>
          </div>
        </section>
        <p className={styles.note}>{t('liveActivity.previewHint')}</p>
      </div>
    </Panel>
  );
}
