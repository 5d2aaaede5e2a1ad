import { useTranslation } from 'react-i18next';
import { toJson } from '../../../draft/copy.ts';
import { isRecord, printJson } from '../../../draft/json-text.ts';
import { useForm } from '../draft-field.tsx';
import { SavedDialog } from './saved-dialog.tsx';

/** Templates: whole bodies of pushes. */
export function Templates({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const { draft } = useForm();
  return (
    <SavedDialog
      appId={appId}
      kind="push-templates"
      trigger={t('saved.templates')}
      title={t('saved.templates')}
      empty={t('saved.noTemplate')}
      use={({ body }) => draft.setText(printJson(toJson(body), 2))}
      contentOf={() => printJson({ body: draft.body })}
    />
  );
}

/** Audiences: conditions on installations. */
export function Audiences({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const { where } = draft.body;
  return (
    <SavedDialog
      appId={appId}
      kind="audiences"
      trigger={t('saved.audiences')}
      title={t('saved.audiences')}
      empty={t('saved.noAudience')}
      use={(item) => draft.edit((body) => ({ ...body, where: toJson(item.where) }))}
      contentOf={() => printJson({ where: isRecord(where) || Array.isArray(where) ? where : {} })}
    />
  );
}
