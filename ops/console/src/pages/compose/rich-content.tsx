import { useTranslation } from 'react-i18next';
import {
  type ButtonDraft,
  buttonsOf,
  maxButtons,
  messageFields,
  withButtons,
} from '../../draft/fields.ts';
import { Button } from '../../kit/controls/button.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import styles from './compose.module.css';
import { DraftField, useForm, useRefusalAt } from './draft-field.tsx';

/** Picture, link and buttons of the message. */
export function RichContent() {
  const { t } = useTranslation();
  return (
    <>
      <div className={styles.pairs}>
        <DraftField
          field={messageFields.image}
          label={t('compose.image')}
          hint={t('compose.imageHint')}
          inputMode="url"
          placeholder="https://"
        />
        <DraftField
          field={messageFields.url}
          label={t('compose.url')}
          hint={t('compose.urlHint')}
          inputMode="url"
          placeholder="https://"
        />
      </div>
      <Buttons />
    </>
  );
}

/** Editor of the buttons. Buttons of a form that it does not know are only shown in the JSON. */
function Buttons() {
  const { t } = useTranslation();
  const { draft } = useForm();
  const error = useRefusalAt(['data', 'buttons']);
  const buttons = buttonsOf(draft.body);
  if (buttons === undefined) return <p>{t('compose.buttonsInJson')}</p>;
  const isDisabled = draft.fault !== undefined;
  const edit = (next: readonly ButtonDraft[]) => draft.edit((body) => withButtons(body, next));
  const change = (at: number, members: Partial<ButtonDraft>) =>
    edit(buttons.map((button, index) => (index === at ? { ...button, ...members } : button)));
  const add = () => edit([...buttons, { id: `button${buttons.length + 1}`, title: '', url: '' }]);
  return (
    <>
      {buttons.map(({ id, title, url }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the position of a button is its identity.
        <fieldset key={at} className={styles.override} disabled={isDisabled}>
          <legend>{t('compose.button', { n: at + 1 })}</legend>
          <div className={styles.pairs}>
            <TextField
              label={t('compose.buttonTitle', { n: at + 1 })}
              value={title}
              maxLength={40}
              onChange={(event) => change(at, { title: event.target.value })}
            />
            <TextField
              label={t('compose.buttonUrl', { n: at + 1 })}
              hint={t('compose.buttonUrlHint')}
              value={url}
              inputMode="url"
              onChange={(event) => change(at, { url: event.target.value })}
            />
            <TextField
              label={t('compose.buttonId', { n: at + 1 })}
              hint={t('compose.buttonIdHint')}
              value={id}
              maxLength={64}
              onChange={(event) => change(at, { id: event.target.value })}
            />
          </div>
          <Button variant="quiet" onClick={() => edit(buttons.filter((_, index) => index !== at))}>
            {t('compose.removeButton', { n: at + 1 })}
          </Button>
        </fieldset>
      ))}
      {error !== undefined && (
        <p className={styles.notice} role="alert">
          {error}
        </p>
      )}
      {buttons.length < maxButtons && (
        <div className={styles.narrow}>
          <Button variant="quiet" disabled={isDisabled} onClick={add}>
            {t('compose.addButton')}
          </Button>
        </div>
      )}
    </>
  );
}
