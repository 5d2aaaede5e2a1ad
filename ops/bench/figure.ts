/** One figure of a benchmark, with its unit in the name. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
}
