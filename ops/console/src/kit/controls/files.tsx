import { useMutation } from '@tanstack/react-query';
import { type DragEvent, useId, useState } from 'react';
import { Failure } from '../states.tsx';
import { Button, buttonClass } from './button.tsx';
import styles from './field.module.css';

interface DownloadProps {
  label: string;
  /** Description of the file, if the label does not describe it. */
  hint?: string;
  name: string;
  type?: string;
  /** Returns the content. Called when the button is clicked. */
  load: () => string | Promise<string>;
}

/** Button that saves a file. */
export function Download({ label, hint, name, type = 'text/csv', load }: DownloadProps) {
  const save = useMutation({
    mutationFn: async () => saveFile(name, new Blob([await load()], { type })),
  });
  return (
    <>
      {save.error && <Failure error={save.error} />}
      <Button title={hint} isBusy={save.isPending} onClick={() => save.mutate()}>
        {label}
      </Button>
    </>
  );
}

function saveFile(name: string, file: Blob): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** Size limit of a file. Keys, certificates and service accounts have less than 10 kB. */
const maxBytes = 1_000_000;

interface FileDropProps {
  /** What to drop here. */
  label: string;
  /** Text of the button that opens the file dialog. */
  choose: string;
  /** File extensions in the file dialog, such as `.p8,.json`. */
  accept: string;
  /** Called with a file of at most 1 MB. Larger files are ignored. */
  read: (file: { name: string; text: string }) => void;
}

/** Area where a file can be dropped or chosen. The browser reads the file. */
export function FileDrop({ label, choose, accept, read }: FileDropProps) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  const take = async (files: FileList | null) => {
    const file = files?.[0];
    if (file && file.size <= maxBytes) read({ name: file.name, text: await file.text() });
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void take(event.dataTransfer.files);
  };
  const onDragOver = (event: DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the input inside does the same by keyboard.
    <div
      className={`${styles.drop} ${isOver ? styles.over : ''}`}
      onDrop={onDrop}
      onDragOver={onDragOver}
      onDragLeave={() => setOver(false)}
    >
      <span>{label}</span>
      <input
        id={id}
        className="visually-hidden"
        type="file"
        accept={accept}
        onChange={(event) => void take(event.target.files)}
      />
      {/* The browser's own button would have the language of the browser. */}
      <label htmlFor={id} className={buttonClass('plain')}>
        {choose}
      </label>
    </div>
  );
}
