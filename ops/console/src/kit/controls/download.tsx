import { useMutation } from '@tanstack/react-query';
import { Failure } from '../states.tsx';
import { Button } from './button.tsx';

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
