import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { SmsTemplate } from '../../../../../client/operations.ts';
import { useSmsTextChange } from '../../../api/messages.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Choice, TextArea, TextField } from '../../../kit/controls/field.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import styles from './messages.module.css';

const maxCharacters = 500;
const types = ['verification', 'notification'] as const;

/**
 * Form for a template. It replaces a template of the same name. The approved text stays in use
 * until the new text is approved.
 */
export function NewTemplate({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const [type, setType] = useState<SmsTemplate['type']>('verification');
  const [text, setText] = useState('');
  const { put } = useSmsTextChange(appId, 'sms-templates');
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    put.mutate({ name, template: { type, text } });
  };
  return (
    <Panel title={t('sms.writeTemplate')}>
      <form className={styles.form} onSubmit={onSubmit}>
        <div className={styles.pair}>
          <TextField
            required
            label={t('sms.name')}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <Choice
            label={t('sms.type')}
            value={type}
            onChange={(event) =>
              setType(types.find((one) => one === event.target.value) ?? 'verification')
            }
          >
            {types.map((value) => (
              <option key={value} value={value}>
                {t(`smsType.${value}`)}
              </option>
            ))}
          </Choice>
        </div>
        <TextArea
          required
          label={t('sms.text')}
          hint={t('sms.textHint', { open: '{{', close: '}}' })}
          maxLength={maxCharacters}
          rows={2}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {put.error && <Failure error={put.error} />}
        <Button type="submit" isBusy={put.isPending}>
          {t('sms.saveTemplate')}
        </Button>
      </form>
    </Panel>
  );
}

/** Form for a signature. A signature precedes the text of each SMS. */
export function NewSignature({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const { put } = useSmsTextChange(appId, 'sms-signatures');
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    put.mutate({ name });
  };
  return (
    <Panel title={t('sms.addSignature')}>
      <form className={styles.form} onSubmit={onSubmit}>
        <TextField
          required
          label={t('sms.name')}
          hint={t('sms.signatureHint')}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        {put.error && <Failure error={put.error} />}
        <Button type="submit" isBusy={put.isPending}>
          {t('sms.saveSignature')}
        </Button>
      </form>
    </Panel>
  );
}
