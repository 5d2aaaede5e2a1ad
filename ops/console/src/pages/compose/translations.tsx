import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import {
  languagesOf,
  translationFields,
  variableFields,
  variablesOf,
  withLanguage,
  withVariable,
} from '../../draft/fields.ts';
import { Button } from '../../kit/controls/button.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import styles from './compose.module.css';
import { DraftField, useForm } from './draft-field.tsx';

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
