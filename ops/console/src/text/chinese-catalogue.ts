export { chineseCatalogue as default } from './catalogue-texts.ts';
