import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAppCreation } from '../../api/apps.ts';
import { Button } from '../../kit/controls/button.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Panel } from '../../kit/panel.tsx';
import { Failure } from '../../kit/states.tsx';
import styles from './new-app.module.css';

const maxName = 100;

/** Form that creates an app and leads to its first steps. */
export function NewApp() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const creation = useAppCreation();
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    creation.mutate(name.trim(), {
      onSuccess: ({ appId }) => void navigate({ to: '/apps/$appId', params: { appId } }),
    });
  };
  return (
    <Panel title={t('apps.new')}>
      <form className={styles.form} onSubmit={onSubmit}>
        <TextField
          label={t('apps.name')}
          value={name}
          required
          maxLength={maxName}
          pattern=".*\S.*"
          onChange={(event) => setName(event.target.value)}
        />
        <Button type="submit" isBusy={creation.isPending}>
          {t('apps.create')}
        </Button>
      </form>
      {creation.error && <Failure error={creation.error} />}
    </Panel>
  );
}
