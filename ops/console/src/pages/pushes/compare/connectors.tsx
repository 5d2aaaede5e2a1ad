import { useTranslation } from 'react-i18next';
import { Badge } from '../../../kit/data/badge.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Empty } from '../../../kit/states.tsx';
import { connectorName } from '../../../text/connectors.ts';
import { formatCount, formatShare } from '../../../text/format.ts';
import type { Compared } from './compared.ts';
import { type ConnectorChange, connectorChanges, type Share } from './differences.ts';

/** Recipients and failed share of two pushes by connector. */
export function Connectors({ sides: [a, b] }: { sides: [Compared, Compared] }) {
  const { t } = useTranslation();
  const rows = connectorChanges(a.progress.connectors, b.progress.connectors);
  if (rows.length === 0) return <Empty title={t('push.noConnectors')} />;
  const failed = ({ failed: part, ended }: Share) => formatShare(part, ended);
  const columns: Column<ConnectorChange>[] = [
    {
      key: 'connector',
      title: t('push.connector'),
      isWide: true,
      cell: ({ connector }) => connectorName(connector),
    },
    { key: 'a', title: t('compare.endedA'), isNumber: true, cell: (row) => formatCount(row.a.ended) },
    { key: 'b', title: t('compare.endedB'), isNumber: true, cell: (row) => formatCount(row.b.ended) },
    { key: 'failedA', title: t('compare.failedA'), isNumber: true, cell: (row) => failed(row.a) },
    { key: 'failedB', title: t('compare.failedB'), isNumber: true, cell: (row) => failed(row.b) },
    {
      key: 'change',
      title: t('compare.change'),
      cell: ({ isWorse }) =>
        isWorse === null ? (
          '–'
        ) : (
          <Badge tone={isWorse ? 'bad' : 'idle'}>{t(isWorse ? 'compare.worse' : 'compare.same')}</Badge>
        ),
    },
  ];
  return (
    <Table label={t('push.byConnector')} columns={columns} rows={rows} keyOf={({ connector }) => connector} />
  );
}
