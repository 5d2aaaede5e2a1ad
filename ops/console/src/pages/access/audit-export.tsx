import { useMutation } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { maxExported, readAudit } from '../../api/access.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Failure } from '../../kit/states.tsx';
import type { AuditFilters } from '../../search.ts';
import { formatCount } from '../../text/format.ts';
import { toCsv, toJsonLines } from './changes.ts';

/** Form of a file, by its extension. */
const forms = {
  jsonl: { type: 'application/x-ndjson', write: toJsonLines },
  csv: { type: 'text/csv', write: toCsv },
} as const;

/** Buttons that save what the filters match as a file. */
export function AuditExport({ filters }: { filters: AuditFilters }) {
  const { t } = useTranslation();
  const save = useMutation({
    mutationFn: async (form: keyof typeof forms) => {
      const { type, write } = forms[form];
      download(
        `audit.${form}`,
        new Blob([write(await readAudit({ ...filters, cursor: undefined }))], { type }),
      );
    },
  });
  const hint = t('audit.exportHint', { most: formatCount(maxExported) });
  return (
    <>
      {save.error && <Failure error={save.error} />}
      <Button title={hint} isBusy={save.isPending} onClick={() => save.mutate('jsonl')}>
        {t('audit.exportLines')}
      </Button>
      <Button title={hint} isBusy={save.isPending} onClick={() => save.mutate('csv')}>
        {t('audit.exportCsv')}
      </Button>
    </>
  );
}

function download(name: string, file: Blob): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
