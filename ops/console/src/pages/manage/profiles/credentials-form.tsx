import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { guideOf } from '../../../../../../connectors/guides.ts';
import { isConnectorId } from '../../../../../../shared/domain/labels.ts';
import {
  type DescribedConnector,
  type ProfileId,
  useProfileChange,
  useRotationChange,
} from '../../../api/profiles.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Choice } from '../../../kit/controls/field.tsx';
import { FileDrop } from '../../../kit/controls/files.tsx';
import { SchemaControl } from '../../../kit/form/members.tsx';
import { type SchemaField, type SchemaShape, shapesOf } from '../../../kit/form/schema.ts';
import { type Draft, type Fault, objectOf, textOf } from '../../../kit/form/values.ts';
import { Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import { type FileContent, readDroppedFile } from './dropped-file.ts';
import styles from './profiles.module.css';

interface CredentialsFormProps {
  id: ProfileId;
  connector: DescribedConnector;
  /** Non-secret members of the stored profile. */
  members: Record<string, unknown>;
  isStored: boolean;
}

/**
 * Form for the credentials of a profile, generated from their JSON Schema. Stored secrets are never
 * shown.
 */
export function CredentialsForm({ id, connector, members, isStored }: CredentialsFormProps) {
  const { t } = useTranslation();
  const shapes = shapesOf(connector.credentials);
  const [shapeAt, setShapeAt] = useState(() => shapeIndexOf(shapes, members));
  const shape = shapes[shapeAt];
  const [draft, setDraft] = useState<Draft>(() => draftOf(shapes, members));
  const [faults, setFaults] = useState<Record<string, Fault>>({});
  const [dropped, setDropped] = useState<FileContent>();
  const { put } = useProfileChange(id);
  const { stage } = useRotationChange(id);
  const help = useCredentialHelp(connector);
  if (!shape) return null;
  const submit = (change: (credentials: object) => void) => {
    const read = objectOf(shape.fields, draft);
    setFaults(read.faults);
    if (Object.keys(read.faults).length === 0) change({ ...shape.constants, ...read.object });
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    submit(put.mutate);
  };
  const take = (file: { name: string; text: string }) => {
    const content = readDroppedFile(shape.fields, connector.id, file);
    setDropped(content);
    if ('draft' in content) setDraft({ ...draft, ...content.draft });
  };
  const inputs = { draft, faults, change: setDraft, helpOf: help.memberOf };
  const isUsual = ({ name, isRequired }: SchemaField) =>
    isRequired || help.memberOf(name) !== undefined;
  return (
    <Panel title={t(isStored ? 'profile.replace' : 'profile.enter')}>
      <form className={styles.form} onSubmit={onSubmit} noValidate>
        {help.source && <p className={styles.source}>{help.source}</p>}
        <FileDrop
          label={t('profile.drop')}
          choose={t('profile.chooseFile')}
          accept=".p8,.pem,.json,.cer,.key,.crt,.p12,.pfx"
          read={take}
        />
        {dropped && <FileNote content={dropped} />}
        <ShapeChoice shapes={shapes} at={shapeAt} choose={setShapeAt} />
        <Inputs fields={shape.fields.filter(isUsual)} {...inputs} />
        <details>
          <summary>{t('profile.more')}</summary>
          <div className={styles.more}>
            <Inputs fields={shape.fields.filter((field) => !isUsual(field))} {...inputs} />
          </div>
        </details>
        {put.error && <Failure error={put.error} />}
        {stage.error && <Failure error={stage.error} />}
        <div className={styles.submit}>
          <Button variant="primary" type="submit" isBusy={put.isPending}>
            {t(isStored ? 'profile.replaceNow' : 'profile.save')}
          </Button>
          {isStored && (
            <Button isBusy={stage.isPending} onClick={() => submit(stage.mutate)}>
              {t('rotation.stage')}
            </Button>
          )}
          <span aria-live="polite">
            {put.isSuccess
              ? t('profile.saved')
              : stage.isSuccess && t(`rotation.is.${stage.data.state}`)}
          </span>
        </div>
      </form>
    </Panel>
  );
}

/**
 * Reason why a file fills no field, or what the file lacks. Sentences of a guide are in English.
 */
function FileNote({ content }: { content: FileContent }) {
  const { t } = useTranslation();
  const sentence = 'draft' in content ? content.lacks : Object(content.fault).sentence;
  if (typeof sentence === 'string')
    return (
      <p role={'draft' in content ? 'status' : 'alert'} lang="en" translate="no">
        {sentence}
      </p>
    );
  return 'draft' in content ? null : <p role="alert">{t(`profile.${content.fault}`)}</p>;
}

interface InputsProps {
  fields: SchemaField[];
  draft: Draft;
  faults: Record<string, Fault>;
  change: (draft: Draft) => void;
  helpOf: (member: string) => string | undefined;
}

function Inputs({ fields, draft, faults, change, helpOf }: InputsProps) {
  const { t } = useTranslation();
  return fields.map((field) => {
    const fault = faults[field.name];
    return (
      <SchemaControl
        key={field.name}
        field={field}
        label={field.isRequired ? field.name : t('form.optional', { name: field.name })}
        hint={helpOf(field.name)}
        error={fault && t(`form.${fault}`)}
        text={draft[field.name] ?? ''}
        change={(text) => change({ ...draft, [field.name]: text })}
      />
    );
  });
}

/**
 * Selection between variants of the credentials, such as key or certificate. Hidden if there is
 * only one variant.
 */
function ShapeChoice({
  shapes,
  at,
  choose,
}: {
  shapes: SchemaShape[];
  at: number;
  choose: (at: number) => void;
}) {
  const { t } = useTranslation();
  const names = shapes.map(({ constants }) => Object.entries(constants)[0]);
  const [first] = names;
  if (!first || shapes.length < 2) return null;
  return (
    <Choice
      label={t('profile.shape')}
      value={at}
      onChange={(event) => choose(Number(event.target.value))}
    >
      {names.map((name, index) => (
        <option key={String(name)} value={index}>
          {t(`credentialShape.${name?.[1]}`)}
        </option>
      ))}
    </Choice>
  );
}

function shapeIndexOf(shapes: SchemaShape[], members: Record<string, unknown>): number {
  const at = shapes.findIndex(({ constants }) =>
    Object.entries(constants).every(([name, value]) => members[name] === value),
  );
  return Math.max(0, at);
}

function draftOf(shapes: SchemaShape[], members: Record<string, unknown>): Draft {
  const fields = shapes.flatMap((shape) => shape.fields);
  return Object.fromEntries(
    fields
      .filter(({ name }) => members[name] !== undefined)
      .map((field) => [field.name, textOf(field, members[field.name])]),
  );
}

/**
 * Returns where the vendor shows the credentials of a connector, and the vendor's name for each
 * member.
 */
function useCredentialHelp({ id }: Pick<DescribedConnector, 'id'>) {
  const { i18n } = useTranslation();
  const guide = isConnectorId(id) ? guideOf(id, i18n.language === 'zh' ? 'zh' : 'en') : undefined;
  return {
    source: guide?.source,
    memberOf: (member: string): string | undefined => guide?.members[member],
  };
}
