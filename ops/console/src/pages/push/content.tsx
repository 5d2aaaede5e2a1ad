import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../../api/replies/admin/types.ts';
import { Copy } from '../../kit/controls/copy.tsx';
import { Time } from '../../kit/data/time.tsx';
import { Facts, Panel } from '../../kit/panel.tsx';
import { formatCount } from '../../text/format.ts';
import styles from './push.module.css';

/** Message of a push, as it was accepted. */
export function Content({ push }: { push: PushDetail }) {
  const { t } = useTranslation();
  const text = JSON.stringify(push.msg, null, 2);
  const pace =
    push.flowControl === null ? t('push.unlimited') : t('push.pace', { rate: formatCount(push.flowControl) });
  return (
    <>
      <Panel title={t('push.message')} side={<Copy text={text} />}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard. */}
        <pre className={styles.json} tabIndex={0}>
          {text}
        </pre>
      </Panel>
      <Panel title={t('push.settings')}>
        <Facts
          rows={[
            [t('push.id'), <code key="id">{push.objectId}</code>],
            [t('push.notificationId'), <code key="nid">{push.notificationId}</code>],
            [t('push.environment'), push.prod],
            [t('push.flowControl'), pace],
            [t('push.time'), <Time key="time" at={push['push-time']} />],
            [t('push.expires'), <Time key="expires" at={push.expiresAt} />],
            [t('pushes.source'), push['from-service']],
          ]}
        />
      </Panel>
    </>
  );
}
