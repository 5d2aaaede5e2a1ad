import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../../api/client.ts';
import { useDeviceCount, useDeviceDeletion } from '../../api/devices.ts';
import { useMay } from '../../api/session.tsx';
import { buttonClass } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Failure } from '../../kit/states.tsx';
import type { DeviceFilters } from '../../search.ts';
import { formatCount } from '../../text/format.ts';
import styles from './devices.module.css';

/** Link to composing a push to the devices of a condition. */
export function ComposeLink({
  appId,
  where,
  label,
}: {
  appId: string;
  where: string;
  label: string;
}) {
  const maySend = useMay('sender');
  if (!maySend) return null;
  return (
    <Link
      className={buttonClass('plain')}
      to="/apps/$appId/pushes/new"
      params={{ appId }}
      search={{ where }}
    >
      {label}
    </Link>
  );
}

/** Number of devices above which a deletion requires that the number is typed. */
const typedFrom = 10_000;

interface BulkProps {
  appId: string;
  filters: DeviceFilters;
  selected: ReadonlySet<string>;
  clear: () => void;
}

/**
 * Actions on the selected devices, or on all devices that match the condition. Shows their number.
 */
export function Bulk({ appId, filters, selected, clear }: BulkProps) {
  const { t } = useTranslation();
  const mayChange = useMay('operator');
  const isOfIds = selected.size > 0;
  const isCounted = !isOfIds && filters.q === undefined;
  const count = useDeviceCount(appId, filters.where, isCounted).data;
  const deletion = useDeviceDeletion(appId);
  if (!isOfIds && (!isCounted || count?.count === undefined)) return null;
  const where = isOfIds
    ? JSON.stringify({ objectId: { $in: [...selected] } })
    : (filters.where ?? '{}');
  const number = isOfIds ? selected.size : (count?.count ?? 0);
  const isLeast = !isOfIds && count?.countIsLeast === true;
  const deviceCount = formatCount(number);
  return (
    <div className={styles.bulk}>
      <span>
        {t(isOfIds ? 'devices.selected' : isLeast ? 'devices.matchLeast' : 'devices.match', {
          count: number,
          shown: deviceCount,
        })}
      </span>
      <ComposeLink appId={appId} where={where} label={t('devices.pushTo')} />
      {mayChange && (
        <Confirm
          triggerVariant="quiet"
          trigger={t(isOfIds ? 'devices.deleteSelected' : 'devices.deleteAll')}
          title={t('devices.deleteTitle', { count: number, shown: deviceCount })}
          action={t('devices.deleteNow', { count: number, shown: deviceCount })}
          typed={number > typedFrom ? String(number) : undefined}
          disabled={number === 0 || isLeast || deletion.isPending}
          onConfirm={() => deletion.mutate({ where, expected: number }, { onSuccess: clear })}
        >
          {t('devices.deleteText')}
        </Confirm>
      )}
      {isLeast && <span className={styles.note}>{t('devices.tooMany')}</span>}
      <div aria-live="polite">
        {deletion.data && t('devices.deleted', { shown: formatCount(deletion.data.deleted) })}
      </div>
      {deletion.error && <DeletionFailure error={deletion.error} />}
    </div>
  );
}

/** Failed deletion. Status 409 means that the audience has changed since it was counted. */
function DeletionFailure({ error }: { error: unknown }) {
  const { t } = useTranslation();
  const hasMoved = error instanceof ApiError && error.status === 409;
  return (
    <div className={styles.failure}>
      {hasMoved && <p>{t('devices.moved')}</p>}
      <Failure error={error} />
    </div>
  );
}
