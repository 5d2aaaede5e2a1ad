import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import type { FailedReceipt } from '../../../../../client/operations.ts';
import { useFailedReceipts, useReceiptRedrive } from '../../../api/profiles.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Time } from '../../../kit/data/values.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import { connectorName } from '../../../text/explanation.ts';
import { formatCount } from '../../../text/format.ts';

/**
 * Refused receipts from gateways, with a button that processes them again. Renders nothing if there
 * are none.
 */
export function FailedReceipts({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const mayChange = useMay('operator');
  const { data } = useFailedReceipts(appId);
  const redrive = useReceiptRedrive(appId);
  const rows = data?.results ?? [];
  if (rows.length === 0 && redrive.data === undefined) return null;
  return (
    <Panel
      title={t('redrive.receipts')}
      side={
        mayChange && (
          <Button isBusy={redrive.isPending} onClick={() => redrive.mutate()}>
            {t('redrive.receiptsNow')}
          </Button>
        )
      }
    >
      {redrive.error && <Failure error={redrive.error} />}
      {redrive.data && (
        <p role="status">
          {t('redrive.receiptsDone', {
            processed: formatCount(redrive.data.processed),
            refused: formatCount(redrive.data.refused),
          })}
        </p>
      )}
      <Table
        label={t('redrive.receipts')}
        columns={columnsOf(t)}
        rows={rows}
        keyOf={({ id }) => id}
      />
    </Panel>
  );
}

const columnsOf = (t: TFunction): Column<FailedReceipt>[] => [
  { key: 'at', title: t('failures.at'), cell: ({ at }) => <Time at={at} /> },
  {
    key: 'connector',
    title: t('push.connector'),
    cell: ({ connector }) => connectorName(connector),
  },
  {
    key: 'reason',
    title: t('failures.reason'),
    isWide: true,
    cell: ({ status, reason }) => (
      <code lang="en" translate="no">
        {status} {reason}
      </code>
    ),
  },
];
