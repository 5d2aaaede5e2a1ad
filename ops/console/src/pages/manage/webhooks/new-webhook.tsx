import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type EventType, eventTypes, type WebhookDraft } from '../../../api/webhooks.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Checkbox, Choice, TextField } from '../../../kit/controls/field.tsx';
import { Panel } from '../../../kit/panel.tsx';
import styles from './webhooks.module.css';

const formats = ['standard', 'feishu', 'dingtalk', 'wecom', 'slack'] as const;
type Format = (typeof formats)[number];

const allTypes = Object.keys(eventTypes) as EventType[];

interface NewWebhookProps {
  create: (draft: WebhookDraft) => void;
  isBusy: boolean;
}

/** Form for a new webhook. A webhook with the same name is replaced. */
export function NewWebhook({ create, isBusy }: NewWebhookProps) {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [format, setFormat] = useState<Format>('standard');
  const [secret, setSecret] = useState('');
  const [events, setEvents] = useState<readonly EventType[]>(['push.done', 'push.failed']);
  const shown = allTypes.filter((type) => format === 'standard' || eventTypes[type].isForPeople);
  const hasSecret = format === 'feishu' || format === 'dingtalk';
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    create({
      name: name.trim(),
      url: url.trim(),
      format,
      events: shown.filter((type) => events.includes(type)),
      ...(hasSecret && secret !== '' ? { signingSecret: secret } : {}),
    });
  };
  const toggle = (type: EventType) =>
    setEvents(events.includes(type) ? events.filter((one) => one !== type) : [...events, type]);
  return (
    <Panel title={t('webhooks.new')}>
      <form className={styles.form} onSubmit={onSubmit}>
        <TextField
          label={t('webhooks.name')}
          required
          maxLength={64}
          pattern="[A-Za-z0-9][A-Za-z0-9_\-]*"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <TextField
          label={t('webhooks.url')}
          hint={t('webhooks.urlHint')}
          type="url"
          required
          maxLength={2048}
          value={url}
          onChange={(event) => setUrl(event.target.value)}
        />
        <Choice
          label={t('webhooks.format')}
          value={format}
          onChange={(event) =>
            setFormat(formats.find((one) => one === event.target.value) ?? 'standard')
          }
        >
          {formats.map((one) => (
            <option key={one} value={one}>
              {t(`webhooks.formats.${one}`)}
            </option>
          ))}
        </Choice>
        {hasSecret && (
          <TextField
            label={t('webhooks.signingSecret')}
            maxLength={200}
            value={secret}
            onChange={(event) => setSecret(event.target.value)}
          />
        )}
        <fieldset className={styles.events}>
          <legend>{t('webhooks.events')}</legend>
          {shown.map((type) => (
            <Checkbox
              key={type}
              label={type}
              hint={t(`webhooks.happens.${type}`)}
              checked={events.includes(type)}
              onChange={() => toggle(type)}
            />
          ))}
        </fieldset>
        <div>
          <Button variant="primary" type="submit" isBusy={isBusy}>
            {t('webhooks.create')}
          </Button>
        </div>
      </form>
    </Panel>
  );
}
