/** Version of deferd, from package.json. */
import { resource } from './packaged-files.ts'

export const { version: VERSION } = JSON.parse(resource('package.json')) as { readonly version: string }
