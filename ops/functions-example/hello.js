/** POST /1.1/functions/hello {"name": "you"} → {"result": "Hello you"} */
export default function hello({ name = 'world' }) {
  return `Hello ${name}`;
}
