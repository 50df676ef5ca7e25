/** Licences of deferd, its dependencies and Node: the copyright file of the packages, and the notices of the executables. */
import type { Dependency } from './production.ts'

export interface Licence extends Dependency {
  /** Text of the licence file; empty when the dependency has none. */
  readonly text: string
}

const rule = '-'.repeat(72)

/** Debian has the text of this licence in one place for all packages. */
const APACHE = 'Licensed under the Apache License, Version 2.0; its text is in /usr/share/common-licenses/Apache-2.0.'

const HEADING = 'deferd, an SMTP relay with a durable deferred queue'

const fullText = ({ license, text }: Licence): string =>
  text.trim() === '' ? `Licensed under ${license}, as its package.json states.` : text.trim()

const section = (place: string, license: string, body: string): string => `${rule}\n${place} (${license})\n\n${body}\n`

const inPackage = (licence: Licence): string =>
  section(`/usr/lib/deferd/node_modules/${licence.name}`, licence.license, licence.license === 'Apache-2.0' ? APACHE : fullText(licence))

export const copyrightText = (own: string, node: string, licences: readonly Licence[]): string =>
  `${HEADING}\n\n${own.trim()}\n
${rule}\n/usr/lib/deferd/bin/node\n
Node.js ${node}, copyright Node.js contributors, MIT licence as above. Its parts have the
licences in https://github.com/nodejs/node/blob/v${node}/LICENSE.\n
${licences.map(inPackage).join('\n')}`

/** All texts in full, because an executable is given away alone. `licence` is the text of Node and its parts. */
export const noticesText = (
  own: string,
  node: { readonly version: string; readonly licence: string },
  licences: readonly Licence[],
): string =>
  [
    `${HEADING}\n\n${own.trim()}\n`,
    section(`Node.js ${node.version}`, 'MIT', node.licence.trim()),
    ...licences.map((licence) => section(licence.name, licence.license, fullText(licence))),
  ].join('\n')
