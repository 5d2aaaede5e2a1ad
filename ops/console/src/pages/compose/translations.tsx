import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { languagesOf, translationFields, withLanguage } from '../../draft/fields.ts';
import { Button } from '../../kit/controls/button.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import styles from './compose.module.css';
import { DraftField, useForm } from './draft-field.tsx';

/** A tag as the service takes it, such as `zh-Hans`. */
const tagPattern = /^[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8})*$/;

/** Title and text in other languages; a device gets those that fit its locale. */
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
          <DraftField field={translationFields(language).title} label={t('compose.titleIn', { language })} />
          <DraftField
            field={translationFields(language).alert}
            label={t('compose.textIn', { language })}
            rows={2}
          />
          <Button look="quiet" onClick={() => draft.edit((body) => withLanguage(body, language, false))}>
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
        <Button look="quiet" disabled={!isFit || draft.fault !== undefined} onClick={add}>
          {t('compose.addLanguage')}
        </Button>
      </div>
    </>
  );
}
