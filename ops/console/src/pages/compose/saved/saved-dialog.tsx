import { Dialog } from '@base-ui/react/dialog';
import { type FormEvent, type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type SavedItem, type SavedKind, useSaved, useSavedActions } from '../../../api/compose.ts';
import { usePushes } from '../../../api/pushes.ts';
import { toJson } from '../../../draft/fields.ts';
import { canonicalText, isRecord, type JsonRecord, printJson } from '../../../draft/json-text.ts';
import { Button, buttonClass } from '../../../kit/controls/button.tsx';
import { TextField } from '../../../kit/controls/field.tsx';
import { Time } from '../../../kit/data/values.tsx';
import dialog from '../../../kit/dialog.module.css';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { ShownAudience } from '../../pushes/shown-condition.tsx';
import { useForm } from '../draft-field.tsx';
import styles from './saved.module.css';

interface SavedDialogProps<K extends SavedKind> {
  appId: string;
  kind: K;
  trigger: string;
  title: string;
  /** Purpose of the list, shown if it is empty. */
  empty: string;
  /** Called with a chosen item; the dialog then closes. Without it, items are only listed. */
  use?: (item: SavedItem<K>) => void;
  /** Returns the content to save, as JSON text. */
  contentOf: (form: FormData) => string;
  /** Additional fields of the form. */
  fields?: ReactNode;
  /** Returns further items below the saved ones. `close` closes the dialog. */
  more?: (close: () => void) => ReactNode;
}

/** Button that opens the saved items of a kind. Items can be used, deleted and added. */
export function SavedDialog<K extends SavedKind>(props: SavedDialogProps<K>) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  // To save a used item again under its name replaces it.
  const [usedName, setUsedName] = useState('');
  const { use } = props;
  const useNamed =
    use &&
    ((item: SavedItem<K>) => {
      setUsedName(item.name);
      use(item);
    });
  return (
    <Dialog.Root open={isOpen} onOpenChange={setOpen}>
      <Dialog.Trigger className={buttonClass('plain')}>{props.trigger}</Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Backdrop className={dialog.backdrop} />
        <Dialog.Popup className={dialog.popup}>
          <Dialog.Title className={dialog.title}>{props.title}</Dialog.Title>
          <Items {...props} {...(useNamed && { use: useNamed })} close={() => setOpen(false)} />
          {props.more?.(() => setOpen(false))}
          <SaveForm {...props} usedName={usedName} />
          <div className={dialog.end}>
            <Dialog.Close className={buttonClass('plain')}>{t('action.back')}</Dialog.Close>
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Items<K extends SavedKind>(props: SavedDialogProps<K> & { close: () => void }) {
  const { appId, kind, empty, use, close } = props;
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useSaved(appId, kind);
  const { remove } = useSavedActions(appId, kind);
  if (isPending) return <Loading rows={3} />;
  if (!data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0) return <Empty title={empty} />;
  return (
    <>
      {remove.error && <Failure error={remove.error} />}
      <ul className={styles.items}>
        {data.results.map((item) => (
          <li key={item.name}>
            <span>
              <strong>{item.name}</strong>{' '}
              <span className={styles.note}>
                {item.updatedBy}, <Time at={item.updatedAt} />
              </span>
            </span>
            <span className={styles.actions}>
              {use && (
                <Button
                  onClick={() => {
                    use(item);
                    close();
                  }}
                >
                  {t('saved.use')}
                </Button>
              )}
              <Button
                variant="quiet"
                aria-label={t('saved.deleteOf', { name: item.name })}
                onClick={() => remove.mutate(item.name)}
              >
                {t('saved.delete')}
              </Button>
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

const titleOfSave = (kind: SavedKind) => `saved.save.${kind}` as const;

function SaveForm<K extends SavedKind>({
  appId,
  kind,
  contentOf,
  fields,
  usedName,
}: SavedDialogProps<K> & { usedName: string }) {
  const { t } = useTranslation();
  const { save } = useSavedActions(appId, kind);
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const entered = new FormData(form);
    const name = String(entered.get('name')).trim();
    if (name === '') return;
    save.mutate({ name, text: contentOf(entered) }, { onSuccess: () => form.reset() });
  };
  return (
    <form className={styles.form} onSubmit={onSubmit}>
      {save.error && <Failure error={save.error} />}
      {fields}
      <div className={styles.name}>
        <TextField
          name="name"
          label={t('saved.name')}
          required
          maxLength={100}
          autoComplete="off"
          defaultValue={usedName}
        />
        <Button type="submit" variant="primary" isBusy={save.isPending}>
          {t(titleOfSave(kind))}
        </Button>
      </div>
    </form>
  );
}

/** Saved templates: whole push bodies. */
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

/** Saved audiences: conditions on installations. */
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
      more={(close) => <RecentAudiences appId={appId} close={close} />}
    />
  );
}

/** Number of recent audiences in the list. */
const maxRecent = 5;

/** Conditions of the newest pushes that people and the API sent, each once. */
function RecentAudiences({ appId, close }: { appId: string; close: () => void }) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const { data } = usePushes(appId, {});
  const conditions = new Map<string, JsonRecord>();
  for (const { where } of data?.results ?? []) {
    const read = toJson(where);
    if (isRecord(read) && Object.keys(read).length > 0 && conditions.size < maxRecent)
      conditions.set(canonicalText(read), read);
  }
  if (conditions.size === 0) return null;
  return (
    <>
      <h3>{t('compose.recent')}</h3>
      <ul className={styles.items}>
        {[...conditions].map(([text, where]) => (
          <li key={text}>
            <ShownAudience target={{ where }} />
            <Button
              onClick={() => {
                draft.edit((body) => ({ ...body, where }));
                close();
              }}
            >
              {t('saved.use')}
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}
