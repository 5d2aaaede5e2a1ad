import { useTranslation } from 'react-i18next';
import type { PushFailure } from '../../../../client/operations.ts';
import { maxExported } from '../../api/pages.ts';
import { readFailures } from '../../api/push.ts';
import { Download } from '../../kit/controls/download.tsx';
import { toCsv } from '../../kit/data/csv.ts';
import type { FailureFilters } from '../../search.ts';
import { formatCount } from '../../text/format.ts';

interface FailuresExportProps {
  push: { appId: string; pushId: string };
  filters: FailureFilters;
}

/** Button that saves the failures of a push as CSV, those of one cause or all. */
export function FailuresExport({ push, filters }: FailuresExportProps) {
  const { t } = useTranslation();
  return (
    <Download
      label={t('action.exportCsv')}
      hint={t('action.exportHint', { most: formatCount(maxExported) })}
      name={`failures-${push.pushId}.csv`}
      load={async () => failuresCsv(await readFailures(push, filters))}
    />
  );
}

const headings = ['device', 'connector', 'outcome', 'status', 'reason', 'at'];

const failuresCsv = (failures: readonly PushFailure[]): string =>
  toCsv([
    headings,
    ...failures.map(({ objectId, connector, outcome, status, reason, at }) => [
      objectId ?? '',
      connector,
      outcome,
      String(status),
      reason,
      at,
    ]),
  ]);
