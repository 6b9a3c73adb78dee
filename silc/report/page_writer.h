// SPDX-License-Identifier: Apache-2.0
#pragma once

// What page*.cc share; nobody else includes it. page.cc is the frame and what looks results up,
// page_story.cc the first page, page_tables.cc the policies and one section per experiment,
// page_questions.cc the six answers.
#include <string>
#include <utility>
#include <vector>

#include "silc/report/page.h"
#include "silc/report/verdict.h"

namespace silc {

class PageWriter {
 public:
  explicit PageWriter(const ReportData& data) : data_(data) {}
  std::string Write();

 private:
  // ---- looking things up ----

  bool Has(const RowKey& row) const;
  std::vector<const ExperimentResult*> Results(const std::string& experiment,
                                               const RowKey& row) const;
  // over the policies of a row, which differ by their training seed
  Estimate Get(const RowKey& row, MetricHandle metric) const;
  // rows that have a result, in the order a reader expects: the folder's, then other people's
  std::vector<RowKey> RowsWith(const std::string& experiment) const;
  Verdict VerdictOn(const PaperMeasure& measure, const RowKey& row) const;
  std::string WhyMissing(const RowKey& row, const std::string& experiment) const;
  // a note under which channels the stiffness of these metrics holds; "" where none is about it
  std::string Channels(const std::vector<RowKey>& rows,
                       const std::vector<MetricHandle>& metrics) const;

  // ---- parts ----

  // `menu` is its word in the list of sections
  std::string Section(const std::string& id,
                      const std::string& menu,
                      const std::string& title,
                      const std::string& body);
  std::string Head() const;
  std::string Shots() const;
  std::string Shot(const std::string& experiment, const std::string& style) const;
  std::string Foot() const;

  // ---- in one page ----

  std::string Story();
  std::string Headline();

  // ---- the policies ----

  std::string Policies();
  std::string TableOne();

  // ---- one experiment: its measures, figure, notes, commands ----

  std::string ExperimentSection(const PageExperiment& section);
  // training seeds whose results are recorded; "" when there are none
  std::string SeedsOf(const std::string& experiment) const;
  std::string MeasureTable(const PaperMeasure& measure, std::vector<Verdict>* verdicts);
  // the headline metrics of our policies and other people's; "" where there are none of theirs
  std::string BesideOthers(const PageExperiment& section);
  // every metric of the experiment, for the policies that have it
  std::string AllMetrics(const std::string& experiment);
  std::string Figures(const std::string& experiment);
  std::string Notes(const std::string& experiment);
  // curves over a few values as tables, where the experiment says so
  std::string CurveTables(const PageExperiment& section);
  std::string CertificateSection();
  static std::string Rerun(const std::vector<std::string>& commands);

  // ---- six questions ----

  std::string Question(int number, const std::string& question, const std::string& answer);
  // a table of metrics (columns) over rows, with "not trained yet" where there is no policy
  std::string Compare(const std::vector<RowKey>& rows, const std::vector<MetricHandle>& metrics);
  // "no policy for this row yet" for those of the rows that have none; "" when all are there
  std::string Absent(const std::vector<RowKey>& rows) const;
  std::string Questions();
  std::string QuadraticForm(int number);
  std::string JitterAndEnergy(int number);
  std::string HandUnderLoad(int number);
  std::string CentreOfMass(int number);
  std::string ImpactAndFoam(int number);
  std::string FeltStiffness(int number);

  // ---- errata and method ----

  std::string Errata();
  std::string Method();

  const ReportData& data_;
  std::vector<std::pair<std::string, std::string>> sections_;  // id, title
  std::string svg_style_;
  int figure_count_ = 0;
};

}  // namespace silc
