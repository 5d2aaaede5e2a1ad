export { englishCatalogue as default } from './catalogue-texts.ts';
