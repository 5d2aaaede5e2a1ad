import { Button } from './button.tsx';

/** Button that saves a text as a file. */
export function Download({ name, text, label }: { name: string; text: string; label: string }) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.click();
    URL.revokeObjectURL(url);
  };
  return <Button onClick={save}>{label}</Button>;
}
