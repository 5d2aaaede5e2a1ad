import {
  createContext,
  type InputHTMLAttributes,
  type ReactNode,
  useContext,
  useState,
} from 'react';
import { useTranslation } from 'react-i18next';
import type { PushForecast } from '../../../../client/operations.ts';
import { type Field, readField, writeField } from '../../draft/fields.ts';
import { isSameJson } from '../../draft/json-text.ts';
import { Choice, TextArea, TextField } from '../../kit/controls/field.tsx';
import type { Draft } from './draft-state.ts';

/**
 * Context of the form's fields: the draft, and the refusal of the last dry run with the member that
 * it names.
 */
export interface FormState {
  appId: string;
  draft: Draft;
  /** Last dry run, which may belong to an earlier version of the draft. */
  forecast?: PushForecast | undefined;
  refusal: { member: string | undefined; message: string } | undefined;
}

const FormContext = createContext<FormState | undefined>(undefined);

export function FormProvider({ value, children }: { value: FormState; children: ReactNode }) {
  return <FormContext value={value}>{children}</FormContext>;
}

export function useForm(): FormState {
  const state = useContext(FormContext);
  if (!state) throw new Error('there is no form');
  return state;
}

/** Returns the refusal's message if it concerns this member or a member inside it. */
export function useRefusalAt(path: readonly string[]): string | undefined {
  const { refusal } = useForm();
  if (refusal?.member === undefined) return undefined;
  const name = path.join('.');
  return refusal.member === name || refusal.member.startsWith(`${name}.`)
    ? refusal.message
    : undefined;
}

/**
 * Returns the text of a field and a function that changes it. The typed text is kept while it means
 * the same value, so a trailing comma in a list does not disappear.
 */
function useFieldText(field: Field) {
  const { draft } = useForm();
  const [typed, setTyped] = useState<string>();
  const read = readField(draft.body, field);
  const isKept =
    typed !== undefined && isSameJson(writeField(draft.body, field, typed), draft.body);
  const change = (text: string) => {
    setTyped(text);
    draft.edit((body) => writeField(body, field, text));
  };
  return { text: isKept ? typed : (read ?? ''), change, isDisplayable: read !== undefined };
}

interface DraftFieldProps extends InputHTMLAttributes<HTMLInputElement> {
  field: Field;
  label: string;
  hint?: string | undefined;
  /** Why the text does not fit. A refusal by the server takes precedence. */
  misfit?: string | undefined;
  isCompact?: boolean;
  /** Number of lines, for a multi-line field. */
  rows?: number;
}

/**
 * Input for one member of the body. If the form cannot show the value, it says so and leaves the
 * value unchanged.
 */
export function DraftField({ field, label, hint, misfit, rows, ...rest }: DraftFieldProps) {
  const { t } = useTranslation();
  const { text, change, isDisplayable: isShown } = useFieldText(field);
  const error = useRefusalAt(field.path) ?? misfit;
  const { draft } = useForm();
  const common = {
    label,
    value: text,
    error,
    hint: isShown ? hint : t('compose.setInJson'),
    disabled: !isShown || draft.fault !== undefined,
  };
  if (rows !== undefined)
    return <TextArea {...common} rows={rows} onChange={(event) => change(event.target.value)} />;
  return <TextField {...rest} {...common} onChange={(event) => change(event.target.value)} />;
}

interface DraftChoiceProps {
  field: Field;
  label: string;
  hint?: string;
  options: readonly (readonly [value: string, title: string])[];
}

/** Select box for one member of the body. An unlisted value becomes an additional option. */
export function DraftChoice({ field, label, hint, options }: DraftChoiceProps) {
  const { t } = useTranslation();
  const { text, change, isDisplayable: isShown } = useFieldText(field);
  const error = useRefusalAt(field.path);
  const { draft } = useForm();
  const isOther = text !== '' && !options.some(([value]) => value === text);
  return (
    <Choice
      label={label}
      value={text}
      error={error}
      hint={isShown ? hint : t('compose.setInJson')}
      disabled={!isShown || draft.fault !== undefined}
      onChange={(event) => change(event.target.value)}
    >
      {isOther && <option value={text}>{text}</option>}
      {options.map(([value, title]) => (
        <option key={value} value={value}>
          {title}
        </option>
      ))}
    </Choice>
  );
}
