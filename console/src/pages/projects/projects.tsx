import { PageHeader } from '../../ui/page.tsx'

export default function ProjectsPage() {
  return <PageHeader title="Projects" />
}
