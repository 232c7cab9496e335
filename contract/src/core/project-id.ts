/** A project's number as family A and events write it: `proj_42`. */
export function projectId(project: number): string {
  return `proj_${project}`
}
