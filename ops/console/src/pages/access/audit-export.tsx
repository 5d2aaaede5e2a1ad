import { useTranslation } from 'react-i18next';
import { readAudit } from '../../api/access.ts';
import { maxExported } from '../../api/apps.ts';
import { Download } from '../../kit/controls/download.tsx';
import type { AuditFilters } from '../../search.ts';
import { formatCount } from '../../text/format.ts';
import { auditCsv, toJsonLines } from './people.tsx';

/** Buttons that save the matching audit entries as a file. */
export function AuditExport({ filters }: { filters: AuditFilters }) {
  const { t } = useTranslation();
  const hint = t('action.exportHint', { most: formatCount(maxExported) });
  return (
    <>
      <Download
        label={t('audit.exportLines')}
        hint={hint}
        name="audit.jsonl"
        type="application/x-ndjson"
        load={async () => toJsonLines(await readAudit(filters))}
      />
      <Download
        label={t('action.exportCsv')}
        hint={hint}
        name="audit.csv"
        load={async () => auditCsv(await readAudit(filters))}
      />
    </>
  );
}
