import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { ListedPush } from '../../../../../client/operations.ts';
import { usePush } from '../../../api/push.ts';
import { usePushes } from '../../../api/pushes.ts';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Choice } from '../../../kit/controls/field.tsx';
import { JsonPanel, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { formatTime } from '../../../text/format.ts';
import { titleOf } from '../shown-push.tsx';
import styles from './compare.module.css';
import type { Compared } from './differences.ts';
import { Connectors, Figures } from './figures.tsx';

const route = getRouteApi('/apps/$appId/pushes/compare');

/** Compares two pushes: messages, recipients, pace and outcomes. Highlights what got worse. */
export function Compare() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const { a, b } = route.useSearch();
  const { data, error, isPending, refetch } = usePushes(appId, {});
  const pushes = data?.results ?? [];
  return (
    <>
      <PageHeader title={t('compare.title')} />
      {isPending ? (
        <Loading rows={2} />
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : pushes.length < 2 && !(a && b) ? (
        <Empty title={t('compare.tooFew')} />
      ) : (
        <Chosen appId={appId} pushes={pushes} a={a} b={b} />
      )}
      {a && b ? (
        <Sides appId={appId} a={a} b={b} />
      ) : (
        pushes.length > 1 && <Empty title={t('compare.choose')} />
      )}
      <Commands
        request={
          a
            ? requestOf('getPushProgress', { path: { appId, id: a } })
            : requestOf('listAppPushes', { path: { appId } })
        }
        command={`pushes --app ${appId}`}
      />
    </>
  );
}

interface ChosenProps {
  appId: string;
  pushes: ListedPush[];
  a: string | undefined;
  b: string | undefined;
}

/** Selection of the two pushes among the newest pushes. */
function Chosen({ appId, pushes, a, b }: ChosenProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const choose = (search: { a?: string | undefined; b?: string | undefined }) =>
    void navigate({
      to: '/apps/$appId/pushes/compare',
      params: { appId },
      search: { a, b, ...search },
    });
  const options = (chosen: string | undefined) => (
    <>
      <option value="">{t('compare.none')}</option>
      {chosen !== undefined && !pushes.some(({ objectId }) => objectId === chosen) && (
        <option value={chosen}>{chosen}</option>
      )}
      {pushes.map((push) => (
        <option key={push.objectId} value={push.objectId}>
          {`${titleOf(push, t).slice(0, 60)} · ${formatTime(push.createdAt)}`}
        </option>
      ))}
    </>
  );
  return (
    <div className={styles.pair}>
      <Choice
        label={t('compare.a')}
        value={a ?? ''}
        onChange={(event) => choose({ a: event.target.value || undefined })}
      >
        {options(a)}
      </Choice>
      <Choice
        label={t('compare.b')}
        value={b ?? ''}
        onChange={(event) => choose({ b: event.target.value || undefined })}
      >
        {options(b)}
      </Choice>
    </div>
  );
}

function Sides({ appId, a, b }: { appId: string; a: string; b: string }) {
  const { t } = useTranslation();
  const first = useCompared(appId, a);
  const second = useCompared(appId, b);
  const error = first.error ?? second.error;
  if (error) return <Failure error={error} />;
  if (!first.side || !second.side) return <Loading rows={8} />;
  const sides: [Compared, Compared] = [first.side, second.side];
  return (
    <>
      <Panel title={t('compare.outcomes')}>
        <Figures appId={appId} sides={sides} />
      </Panel>
      <Panel title={t('push.byConnector')}>
        <Connectors sides={sides} />
      </Panel>
      <div className={styles.pair}>
        {sides.map(({ push }, at) => (
          <JsonPanel
            key={at === 0 ? 'a' : 'b'}
            title={t(at === 0 ? 'compare.messageA' : 'compare.messageB')}
            value={push.msg}
          />
        ))}
        {sides.map(({ push }, at) => (
          <JsonPanel
            key={at === 0 ? 'where-a' : 'where-b'}
            title={t(at === 0 ? 'compare.whereA' : 'compare.whereB')}
            value={push.request.target ?? push.where}
          />
        ))}
      </div>
    </>
  );
}

function useCompared(appId: string, pushId: string): { side?: Compared; error: unknown } {
  const { record, progress } = usePush(appId, pushId);
  if (record.data && progress.data)
    return { side: { push: record.data, progress: progress.data }, error: null };
  return { error: record.error ?? progress.error };
}
