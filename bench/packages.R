# The tables of colonnade_bench.defaults.packages as CSV files: Rscript bench/packages.R FOLDER
# Debian: apt-get install r-base-core r-cran-modeldata r-cran-mass r-cran-aer r-cran-cardata r-cran-mlbench
#         r-cran-kernlab r-cran-survival
folder <- commandArgs(trailingOnly = TRUE)[1]
dir.create(folder, recursive = TRUE, showWarnings = FALSE)
tables <- list(
  modeldata = c("ames", "attrition", "credit_data", "mlc_churn", "car_prices", "concrete", "wa_churn",
                "Sacramento", "lending_club", "penguins"),
  MASS = c("Boston", "birthwt"),
  AER = c("HMDA", "CPS1985", "HousePrices", "DoctorVisits"),
  carData = c("Salaries", "Mroz", "TitanicSurvival", "SLID"),
  mlbench = c("PimaIndiansDiabetes", "Soybean", "HouseVotes84", "Vehicle"),
  kernlab = "spam",
  survival = "flchain"
)
for (package in names(tables)) for (name in tables[[package]]) {
  found <- new.env()
  data(list = name, package = package, envir = found)
  file <- file.path(folder, paste0(package, "_", name, ".csv"))
  write.csv(as.data.frame(get(name, envir = found)), file, row.names = FALSE, na = "")
}
