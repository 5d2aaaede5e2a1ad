import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import {
  detailFields,
  languagesOf,
  messageFields,
  overrideFields,
  readField,
  translationFields,
  variableFields,
  variablesOf,
  withLanguage,
  withVariable,
  writeField,
} from '../../draft/fields.ts';
import { isRecord, type JsonRecord, valueAt } from '../../draft/json-text.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Choice, TextField } from '../../kit/controls/field.tsx';
import { Panel } from '../../kit/panel.tsx';
import { vendorName } from '../../text/explanation.ts';
import styles from './compose.module.css';
import { DraftChoice, DraftField, useForm } from './draft-field.tsx';
import { RichContent } from './rich-content.tsx';

/** Members of `data` for one kind of device, with the name of the kind. */
const kinds = [
  ['ios', 'iOS'],
  ['android', 'Android'],
  ['hms', 'Huawei'],
  ['honor', 'Honor'],
  ['mi', 'Xiaomi'],
  ['oppo', 'OPPO'],
  ['vivo', 'vivo'],
  ['mz', 'Meizu'],
  ['fcm', 'FCM'],
] as const;

/** Returns the displayed name of a kind. FCM is the only kind that is not a brand of devices. */
const nameOf = (key: string, name: string) => (key === 'fcm' ? name : (vendorName(key) ?? name));

/** Message: title and text, and settings that only some vendors support. */
export function Message() {
  const { t } = useTranslation();
  return (
    <Panel title={t('push.message')}>
      <div className={styles.fields}>
        <DraftField
          field={messageFields.title}
          label={t('compose.title')}
          hint={useCount('title')}
        />
        <DraftField
          field={messageFields.alert}
          label={t('compose.text')}
          rows={3}
          hint={useCount('alert')}
        />
        <RichContent />
        <Overrides />
        <details className={styles.more}>
          <summary>{t('compose.languages')}</summary>
          <Translations />
        </details>
        <details className={styles.more}>
          <summary>{t('compose.variables')}</summary>
          <Variables />
        </details>
        <details className={styles.more}>
          <summary>{t('compose.details')}</summary>
          <Details />
        </details>
      </div>
    </Panel>
  );
}

/** Returns a text with the length of a field. Gateways count Unicode code points. */
function useCount(name: keyof typeof messageFields): string | undefined {
  const { t } = useTranslation();
  const { draft } = useForm();
  const count = [...(readField(draft.body, messageFields[name]) ?? '')].length;
  return count === 0 ? undefined : t('compose.characters', { count });
}

function Details() {
  const { t } = useTranslation();
  return (
    <div className={styles.pairs}>
      <DraftField
        field={detailFields.badge}
        label={t('compose.badge')}
        hint={t('compose.badgeHint')}
        placeholder="Increment"
      />
      <DraftField
        field={detailFields.sound}
        label={t('compose.sound')}
        hint={t('compose.soundHint')}
      />
      <DraftField
        field={detailFields.thread}
        label={t('compose.thread')}
        hint={t('compose.threadHint')}
      />
      <DraftField
        field={detailFields.category}
        label={t('compose.category')}
        hint={t('compose.categoryHint')}
      />
      <DraftField
        field={detailFields.collapse}
        label={t('compose.collapse')}
        hint={t('compose.collapseHint')}
      />
      <DraftField
        field={detailFields.notificationChannel}
        label={t('compose.notificationChannel')}
        hint={t('compose.notificationChannelHint')}
      />
      <DraftChoice
        field={detailFields.silent}
        label={t('compose.silent')}
        hint={t('compose.silentHint')}
        options={[
          ['', t('compose.shown')],
          ['true', t('compose.toApp')],
        ]}
      />
    </div>
  );
}

/** Titles and texts for single kinds of devices. They override the common texts. */
function Overrides() {
  const { t } = useTranslation();
  const { draft } = useForm();
  const [added, setAdded] = useState<readonly string[]>([]);
  const visibleKinds = kinds.filter(([key]) => added.includes(key) || hasTexts(draft.body, key));
  const remove = (key: string) => {
    setAdded(added.filter((one) => one !== key));
    const { title, alert } = overrideFields(key);
    draft.edit((body) => writeField(writeField(body, title, ''), alert, ''));
  };
  return (
    <>
      {visibleKinds.map(([key, name]) => (
        <fieldset key={key} className={styles.override}>
          <legend>{t('compose.onlyFor', { name })}</legend>
          <DraftField field={overrideFields(key).title} label={t('compose.titleFor', { name })} />
          <DraftField
            field={overrideFields(key).alert}
            label={t('compose.textFor', { name })}
            rows={2}
          />
          <Button variant="quiet" onClick={() => remove(key)}>
            {t('compose.removeTexts', { name })}
          </Button>
        </fieldset>
      ))}
      <div className={styles.narrow}>
        <Choice
          isCompact
          label={t('compose.addTexts')}
          value=""
          disabled={draft.fault !== undefined}
          onChange={(event) => setAdded([...added, event.target.value])}
        >
          <option value="">{t('compose.addTexts')}</option>
          {kinds
            .filter((kind) => !visibleKinds.includes(kind))
            .map(([key, name]) => (
              <option key={key} value={key}>
                {nameOf(key, name)}
              </option>
            ))}
        </Choice>
      </div>
    </>
  );
}

function hasTexts(body: JsonRecord, key: string): boolean {
  const own = valueAt(body, ['data', key]);
  return isRecord(own) && (Object.hasOwn(own, 'title') || Object.hasOwn(own, 'alert'));
}

/** Language tag in the form that the service accepts, such as `zh-Hans`. */
const tagPattern = /^[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8})*$/;

/** Title and text in other languages. A device gets the translation for its locale. */
export function Translations() {
  const { t } = useTranslation();
  const { draft } = useForm();
  const [tag, setTag] = useState('');
  const languages = languagesOf(draft.body);
  const isFit = tagPattern.test(tag) && !languages.includes(tag);
  const add = () => {
    draft.edit((body) => withLanguage(body, tag, true));
    setTag('');
  };
  return (
    <>
      {languages.map((language) => (
        <fieldset key={language} className={styles.override}>
          <legend>{t('compose.onlyIn', { language })}</legend>
          <DraftField
            field={translationFields(language).title}
            label={t('compose.titleIn', { language })}
          />
          <DraftField
            field={translationFields(language).alert}
            label={t('compose.textIn', { language })}
            rows={2}
          />
          <Button
            variant="quiet"
            onClick={() => draft.edit((body) => withLanguage(body, language, false))}
          >
            {t('compose.removeLanguage', { language })}
          </Button>
        </fieldset>
      ))}
      <div className={styles.narrow}>
        <TextField
          label={t('compose.languageTag')}
          hint={t('compose.languageHint')}
          value={tag}
          disabled={draft.fault !== undefined}
          onChange={(event) => setTag(event.target.value.trim())}
        />
        <Button variant="quiet" disabled={!isFit || draft.fault !== undefined} onClick={add}>
          {t('compose.addLanguage')}
        </Button>
      </div>
    </>
  );
}

/** Variable name in the form that the service accepts. */
const namePattern = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** Variables in the texts. Each has a field of the installation and a default. */
export function Variables() {
  const { t } = useTranslation();
  const { draft } = useForm();
  const [name, setName] = useState('');
  const names = variablesOf(draft.body);
  const isFit = namePattern.test(name) && !names.includes(name);
  const add = () => {
    draft.edit((body) => withVariable(body, name, true));
    setName('');
  };
  return (
    <>
      {names.map((one) => (
        <fieldset key={one} className={styles.override}>
          <legend translate="no">{`{{${one}}}`}</legend>
          <DraftField
            field={variableFields(one).field}
            label={t('compose.variableField', { name: one })}
          />
          <DraftField
            field={variableFields(one).default}
            label={t('compose.variableDefault', { name: one })}
          />
          <Button
            variant="quiet"
            onClick={() => draft.edit((body) => withVariable(body, one, false))}
          >
            {t('compose.removeVariable', { name: one })}
          </Button>
        </fieldset>
      ))}
      <div className={styles.narrow}>
        <TextField
          label={t('compose.variableName')}
          hint={t('compose.variableHint', { example: '{{name}}' })}
          value={name}
          disabled={draft.fault !== undefined}
          onChange={(event) => setName(event.target.value.trim())}
        />
        <Button variant="quiet" disabled={!isFit || draft.fault !== undefined} onClick={add}>
          {t('compose.addVariable')}
        </Button>
      </div>
    </>
  );
}
