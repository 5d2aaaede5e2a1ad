import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { vendorConnector } from '../../../../../shared/domain/labels.ts';
import { useFields } from '../../api/devices.ts';
import { useMeta } from '../../api/profiles.ts';
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
import { deviceLanguages, strictestOf } from '../../draft/limits.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Choice, TextField } from '../../kit/controls/field.tsx';
import { Panel } from '../../kit/panel.tsx';
import { connectorName, deviceKindName, deviceKinds } from '../../text/explanation.ts';
import { formatShare } from '../../text/format.ts';
import { currentLocale } from '../../text/texts.ts';
import styles from './compose.module.css';
import { DraftChoice, DraftField, useForm } from './draft-field.tsx';
import { Example } from './example.tsx';
import { MessageClass } from './message-class.tsx';
import { RichContent } from './rich-content.tsx';

/** Message: title and text, and settings that only some vendors support. */
export function Message() {
  const { t } = useTranslation();
  return (
    <Panel title={t('push.message')}>
      <div className={styles.fields}>
        <DraftField
          field={messageFields.title}
          label={t('compose.title')}
          {...useLength('title')}
        />
        <DraftField
          field={messageFields.alert}
          label={t('compose.text')}
          rows={3}
          {...useLength('alert')}
        />
        <RichContent />
        <MessageClass />
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

/**
 * Returns a text with the length of a field and the strictest limit of the audience's vendors, and
 * an error if the text is longer. Gateways count Unicode code points.
 */
function useLength(name: 'title' | 'alert'): { hint?: string; misfit?: string } {
  const { t } = useTranslation();
  const { draft, forecast } = useForm();
  const limits = useMeta().data?.connectors ?? [];
  const count = [...(readField(draft.body, messageFields[name]) ?? '')].length;
  if (count === 0) return {};
  const reached = Object.entries(forecast?.connectors ?? {}).flatMap(([id, share]) =>
    share && share.devices > 0 && !overridden(draft.body, name).has(id) ? [id] : [],
  );
  const strictest = strictestOf(limits, reached, `${name}Chars`);
  if (!strictest) return { hint: t('compose.characters', { count }) };
  const { id, most } = strictest;
  const values = { count, most, over: count - most, name: connectorName(id) };
  return count > most
    ? { misfit: t('compose.overLimit', values) }
    : { hint: t('compose.ofLimit', values) };
}

/** Returns the connectors whose devices get another text than the common one. */
const overridden = (body: JsonRecord, name: 'title' | 'alert'): Set<string | undefined> =>
  new Set(
    deviceKinds
      .filter((key) => (valueAt(body, ['data', key, name]) ?? null) !== null)
      .map(vendorConnector),
  );

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
  const visibleKinds = deviceKinds.filter(
    (key) => added.includes(key) || hasTexts(draft.body, key),
  );
  const remove = (key: string) => {
    setAdded(added.filter((one) => one !== key));
    const { title, alert } = overrideFields(key);
    draft.edit((body) => writeField(writeField(body, title, ''), alert, ''));
  };
  return (
    <>
      {visibleKinds.map((key) => {
        const name = deviceKindName(key);
        return (
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
        );
      })}
      <div className={styles.narrow}>
        <Choice
          isCompact
          label={t('compose.addTexts')}
          value=""
          disabled={draft.fault !== undefined}
          onChange={(event) => setAdded([...added, event.target.value])}
        >
          <option value="">{t('compose.addTexts')}</option>
          {deviceKinds
            .filter((key) => !visibleKinds.includes(key))
            .map((key) => (
              <option key={key} value={key}>
                {deviceKindName(key)}
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
      <DeviceLanguages added={languages} />
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

/** Buttons that add a translation for a language of the app's devices, most frequent first. */
function DeviceLanguages({ added }: { added: readonly string[] }) {
  const { t } = useTranslation();
  const { appId, draft } = useForm();
  const locales = useFields(appId).data?.results.find(({ name }) => name === 'locale')?.values;
  const languages = deviceLanguages(locales ?? []).filter(({ tag }) => !added.includes(tag));
  if (languages.length === 0) return null;
  const names = new Intl.DisplayNames(currentLocale(), { type: 'language' });
  return (
    <fieldset className={styles.override}>
      <legend>{t('compose.deviceLanguages')}</legend>
      <div className={styles.kinds}>
        {languages.map(({ tag, share }) => (
          <Button
            key={tag}
            disabled={draft.fault !== undefined}
            onClick={() => draft.edit((body) => withLanguage(body, tag, true))}
          >
            {t('compose.addLanguageOf', {
              language: `${names.of(tag)} ${tag}`,
              share: formatShare(share, 1),
            })}
          </Button>
        ))}
      </div>
    </fieldset>
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
      {names.length > 0 && <Example />}
    </>
  );
}
