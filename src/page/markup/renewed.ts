import { html, type Html } from '../../presentation/html.ts'

/**
 * Names an element that the script replaces in its place, while the screen is open, by the element of this name in a newer print of the
 * same screen (browser/renewal.js). The elements of a screen have different names.
 */
export const renewed = (name: string): Html => html` data-renewed="${name}"`
