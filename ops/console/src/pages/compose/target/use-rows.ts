import { useEffect, useMemo, useState } from 'react';
import {
  isSameJson,
  type JsonValue,
  parseJsonText,
  printJson,
  withValueAt,
} from '../../../draft/json-text.ts';
import { conditionOf, hasIncomplete, type Rows, rowsOf } from '../../../draft/rows.ts';
import { readCondition, writeCondition } from '../../../draft/where.ts';
import { useForm } from '../draft-field.tsx';

interface Typed {
  rows: Rows;
  /** Condition that the rows wrote: another one in the body comes from elsewhere. */
  written: JsonValue;
}

/** Rows of the condition of the draft, and the function that changes them; undefined rows where only JSON can show it. */
export function useRows(setIncomplete: (isIncomplete: boolean) => void) {
  const { draft } = useForm();
  const [typed, setTyped] = useState<Typed>();
  const where = printJson(draft.body.where ?? {});
  const read = useMemo(() => {
    const condition = readCondition(parseJsonText(where));
    return condition && rowsOf(condition);
  }, [where]);
  const isOwn = typed !== undefined && isSameJson(typed.written, draft.body.where ?? {});
  const rows = isOwn ? typed.rows : read;
  const isIncomplete = rows !== undefined && hasIncomplete(rows);
  useEffect(() => {
    setIncomplete(isIncomplete);
    return () => setIncomplete(false);
  }, [isIncomplete, setIncomplete]);
  const change = (next: Rows) => {
    const written = writeCondition(conditionOf(next));
    setTyped({ rows: next, written });
    draft.edit((body) => withValueAt(body, ['where'], written));
  };
  return { rows, change };
}
