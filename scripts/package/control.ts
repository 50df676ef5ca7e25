/** Control files of the Debian packages (deb-control(5)). */

export interface Control {
  readonly name: string
  readonly version: string
  /** `amd64`, `arm64`, or `all`. */
  readonly architecture: string
  readonly maintainer: string
  /** Relations by field: Depends, Conflicts, Provides, Replaces. */
  readonly relations: Readonly<Record<string, string>>
  /** First line: one sentence without a final dot. The others explain it. */
  readonly description: readonly [string, ...string[]]
}

/** Text of the file `control`. `size` is the size of the installed files in bytes. */
export function controlText({ name, version, architecture, maintainer, relations, description }: Control, size: number): string {
  const [summary, ...details] = description
  return [
    `Package: ${name}`,
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    `Maintainer: ${maintainer}`,
    `Installed-Size: ${Math.ceil(size / 1024)}`,
    ...Object.entries(relations).map(([field, value]) => `${field}: ${value}`),
    'Section: mail',
    'Priority: optional',
    `Description: ${summary}`,
    ...details.map((line) => (line === '' ? ' .' : ` ${line}`)),
    '',
  ].join('\n')
}

/** Name of the file of a package. */
export const debName = ({ name, version, architecture }: Control): string => `${name}_${version}_${architecture}.deb`

/** The changelog in Debian's form. `at` is in seconds since the epoch. */
export function changelog({ version, maintainer }: Pick<Control, 'version' | 'maintainer'>, at: number): string {
  const date = new Date(at * 1000).toUTCString().replace('GMT', '+0000')
  return `deferd (${version}) unstable; urgency=medium\n\n  * The changes are in /usr/share/doc/deferd/CHANGELOG.md.gz.\n\n -- ${maintainer}  ${date}\n`
}
